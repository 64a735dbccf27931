"""Validates each line of the files as a FHIR R4 resource, and prints how many there were of each type."""

import collections
import json
import sys

from fhir.resources.R4B import get_fhir_model_class

found = collections.Counter()
for name in sys.argv[1:]:
    with open(name, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            resource = json.loads(line)
            get_fhir_model_class(resource["resourceType"]).model_validate(resource)
            found[resource["resourceType"]] += 1
print(json.dumps(found))
