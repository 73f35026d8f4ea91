"""python -m torch_tpu env | info"""

import sys

from torch_tpu.cli import main

sys.exit(main())
