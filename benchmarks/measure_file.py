"""Measure struct file before and after the patch on this machine and write what notebook 10 shows.

    python benchmarks/measure_file.py [-o data/scores/file-5.8-measured.json]

The same as ``kitlib measure file-5.8 file --after file-5.8-patch --format json``, at most a minute; needs a
quiet machine. The checksum in the folder's manifest is renewed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from kitlib.access import load_profile
from kitlib.costtext import measure_text
from kitlib.manifest import renew
from kitlib.measure import measure
from kitlib.measurefile import measurement_record
from kitlib.sources import open_source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("data/scores/file-5.8-measured.json"))
    output = parser.parse_args().output
    before, after = (open_source(name).struct("file") for name in ("file-5.8", "file-5.8-patch"))
    done = measure(before, after, load_profile("struct_file"))
    output.write_text(json.dumps(measurement_record(done), indent=1, allow_nan=False) + "\n", encoding="utf-8")
    print(measure_text(done, compared=True))
    print(f"{output}: {renew(output)}")


if __name__ == "__main__":
    main()
