#!/usr/bin/env bash
# The first step of the actions: a Python that is new enough installs the driftgate that this file lies beside.
# DRIFTGATE_PYTHON names it; see src/driftgate/installation.py for the rest.
set -euo pipefail

python=${DRIFTGATE_PYTHON:-python3}
sources=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)

if ! command -v -- "$python" > /dev/null; then
  echo "::error title=driftgate::the interpreter of the input python is not on this runner; install Python 3.10 or newer"
  exit 2
fi
exec "$python" -I -c 'if True:
  import sys
  if sys.version_info < (3, 10):
      print("::error title=driftgate::the interpreter of the input python is older than 3.10; name a newer one")
      sys.exit(2)
  sys.path.insert(0, sys.argv[1])
  from driftgate.installation import main
  main(sys.argv[1])
' "$sources"
