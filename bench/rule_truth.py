"""How much of what releases refuse because of graphs is reported, and how much of what is reported is refused.

    python bench/rule_truth.py --judge 0.19=PYTHON [--judge 0.17=PYTHON ...] [--bridge FOLDER] [--count 600]
    python bench/rule_truth.py --statements 200 --judge ...

PYTHON is the interpreter of an environment with torch and that release of megatron-core, FOLDER a Megatron-Bridge for
the newest of them. Random configurations around the settings of graphs are put to the release itself and, as files, to
`cgmigrate check` of the environment that runs this. A configuration counts as refused where the release accepts the
same without graphs, or its text is about graphs; it counts as reported if a diagnostic is an error.
"""

from __future__ import annotations

import sys

from sweeping.run import main

if __name__ == "__main__":
    sys.exit(main((__doc__ or "").partition("\n")[0]))
