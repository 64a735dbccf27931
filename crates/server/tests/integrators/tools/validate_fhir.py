"""Validates each line of the files as a FHIR R4 resource, and each patient by the rules of AU Core Patient. Prints how
many there were of each type."""

import collections
import json
import sys

from fhir.resources.R4B import get_fhir_model_class
from fhirpathpy import compile

# The profile's cardinalities and invariants, as it states them.
ABSENT = "extension('http://hl7.org/fhir/StructureDefinition/data-absent-reason')"
PROFILE = {
    "identifier 1..*": "identifier.count() >= 1",
    "name 1..*": "name.count() >= 1",
    "gender 1..1": "gender.count() = 1",
    "birthDate 1..1": "birthDate.count() = 1",
    "au-core-pat-01": f"identifier.where(system.count() + value.count() > 1).exists() xor identifier.{ABSENT}.exists()",
    "au-core-pat-02": f"name.family.exists() xor name.{ABSENT}.exists()",
    "au-core-pat-03": f"name.all((text.exists() or family.exists() or given.exists()) xor {ABSENT}.exists())",
}
RULES = {name: compile(rule) for name, rule in PROFILE.items()}

found = collections.Counter()
for file in sys.argv[1:]:
    with open(file, encoding="utf-8", newline="\n") as lines:
        for line in lines:
            resource = json.loads(line)
            get_fhir_model_class(resource["resourceType"]).model_validate(resource)
            found[resource["resourceType"]] += 1
            if resource["resourceType"] == "Patient":
                broken = [name for name, rule in RULES.items() if rule(resource) != [True]]
                assert not broken, f"{resource['id']}: {broken}"
print(json.dumps(found))
