"""Run one arm of a verification, on one GPU, as a task of NeMo-Run.

`cgmigrate verify ... --launcher srun --work WORK` writes the arms. `python nemo_run_arm.py WORK/KEY` runs the one of
this folder. The same `cgmigrate verify` without `--launcher` then reads its result. For a cluster, give the task a
`run.SlurmExecutor`. This Python has NeMo-Run and cgmigrate; the task runs with the Python of the arm.
"""

import json
import sys
from pathlib import Path

import nemo_run as run

from cgmigrate.verify.run import FIXED

if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    python, *paths = json.loads((place / "made-by.json").read_text())["home"]
    task = run.Script(
        "cgmigrate.verify.probe",
        m=True,
        entrypoint=python,
        args=[str(place / "arm.json"), str(place.parent / "states"), str(place)],
        env={**FIXED, "PYTHONPATH": ":".join([*paths, str(place.parent / "program")]), "PYTHONSAFEPATH": "1"},
    )
    run.run(task, executor=run.LocalExecutor(), name=place.name)
