"""What releases were found to do with the entries and rules that ship: ``rules/proofs.json``.

``python scripts/proofs.py 0.12.3=DIR 0.13.1=DIR …`` builds both forms of each in the releases that it gets, as
``cgmigrate rules test --mcore`` does, and keeps what is proved. Folders are source checkouts: wheels before 0.17 have
no command line. ``tests/verify/test_packs.py`` compares the file with the releases that are available.
"""

import json
import sys

from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.verify.mcore import homes_of
from cgmigrate.verify.pack_forms import packs_of
from cgmigrate.verify.packs import PROVED, WRONG, judge


def main() -> int:
    """Write the file; return 1 where a release contradicts a pack."""
    judged = judge(packs_of(None), homes_of(sys.argv[1:]))
    proofs = {one.name: one.reason for one in judged if one.verdict == PROVED}
    text = json.dumps(proofs, indent=2, sort_keys=True) + "\n"
    (rules_folder() / "proofs.json").write_text(text, encoding="utf-8")
    for one in judged:
        print(f"{one.verdict}  {one.name}: {one.reason}")
    return int(any(one.verdict == WRONG for one in judged))


if __name__ == "__main__":
    sys.exit(main())
