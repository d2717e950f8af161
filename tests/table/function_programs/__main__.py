"""Records what the programs give."""

import json
import os

from function_programs import PROGRAMS, outcome

# Flink writes to the standard output, too, when it cannot compile what it has generated.
with open(os.environ["RECORD_TO"], "w", encoding="utf-8") as file:
    wanted = [each for each in PROGRAMS if each.__name__ in os.environ.get("ONLY", each.__name__).split()]
    json.dump({each.__name__: outcome(each) for each in wanted}, file, indent=1, ensure_ascii=False)
    file.write("\n")
