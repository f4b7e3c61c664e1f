"""The migration as a codemod of libcst, for teams whose migrations run there.

    python -m libcst.tool codemod -x cgmigrate.codemod.MigrateCudaGraphs src/

It needs the extra ``libcst``. libcst gives one Python file at a time: a fix that has to change several
files is left for ``cgmigrate fix``, which writes all of them or none.
"""

from __future__ import annotations

import argparse

import libcst
from libcst.codemod import CodemodCommand, CodemodContext, SkipFile

from cgmigrate.api import Options, migrate_text


class MigrateCudaGraphs(CodemodCommand):
    """Rewrites the CUDA-graph settings of a file as ``cgmigrate fix`` does; what remains becomes warnings."""

    DESCRIPTION = "Migrate the CUDA-graph settings of megatron-core to their new names."

    def __init__(
        self,
        context: CodemodContext,
        source: str | None = None,
        target: str | None = None,
        unsafe_fixes: bool = False,
    ) -> None:
        super().__init__(context)
        self.options = Options(source, target, unsafe_fixes=unsafe_fixes)

    @staticmethod
    def add_args(arg_parser: argparse.ArgumentParser) -> None:
        """Add options of `cgmigrate fix`."""
        arg_parser.add_argument("--from", dest="source", metavar="RELEASE", help="the release of the files")
        arg_parser.add_argument("--to", dest="target", metavar="RELEASE", help="the release to migrate to")
        arg_parser.add_argument("--unsafe-fixes", action="store_true", help="also apply unsafe fixes")

    def transform_module_impl(self, tree: libcst.Module) -> libcst.Module:
        """Return the migrated module. Raises SkipFile if there is nothing to say."""
        before = tree.code
        result = migrate_text(before, self.context.filename or "module.py", self.options)
        for one in result.diagnostics:
            advice = "; ".join(filter(None, (one.because, one.blocked_by, one.help)))
            self.warn(f"{one.path}:{one.line}: {one.rule} {one.message}" + (f" ({advice})" if advice else ""))
        if result.text == before:
            if not result.diagnostics:
                raise SkipFile("nothing to migrate")
            # libcst does not print the warnings of a file that is skipped.
            return tree
        return libcst.parse_module(result.text, config=tree.config_for_parsing)
