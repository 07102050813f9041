"""Reads the artifacts of a target folder as strict public readers do."""

import json
import sys

from dbt_artifacts_parser import parser

READERS = {
    "manifest": (parser.parse_manifest, "ManifestV12"),
    "run_results": (parser.parse_run_results, "RunResultsV6"),
    "catalog": (parser.parse_catalog, "CatalogV1"),
    "sources": (parser.parse_sources, "SourcesV3"),
}


def main(target: str) -> int:
    failed = 0
    for name, (read, want) in READERS.items():
        with open(f"{target}/{name}.json", encoding="utf-8") as file:
            document = json.load(file)
        try:
            got = type(read(document)).__name__
        except ValueError as error:
            print(f"{name}.json: {error}")
            failed = 1
            continue
        print(f"{name}.json: {got}")
        failed |= got != want
    return failed


sys.exit(main(sys.argv[1]))
