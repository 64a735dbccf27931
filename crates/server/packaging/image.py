"""Makes an image of programs that are built, without an engine: image.py FILE.tar VERSION COMMIT PROGRAM…

The image is an OCI layout in a tar file. It holds the programs, the libraries that they load, and this machine's authorities. The same
programs make the same bytes. `podman load`, `docker load` or `skopeo copy oci-archive:FILE.tar docker://…` take it from there.
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import sys
import tarfile

SECOND = 1_000_000_000  # As Docker counts in health checks.
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"


def add(archive, name, content, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), mode, int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    archive.addfile(entry, io.BytesIO(content))


def tar(files):
    """A tar file; its entries are in order, belong to root, and have one time."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(files):
            add(archive, name, *files[name])
    return buffer.getvalue()


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def libraries(program):
    """The files that the loader needs for a program, the loader included."""
    found = subprocess.run(["ldd", program], capture_output=True, text=True)
    # A static program needs none.
    return re.findall(r"(?:=> )?(/\S+) \(0x", found.stdout)


def main(output, version, commit, *programs):
    files = {f"usr/local/bin/{os.path.basename(program)}": (content_of(program), 0o755) for program in programs}
    for library in sorted({library for program in programs for library in libraries(program)}):
        files[library.lstrip("/")] = (content_of(library), 0o755)
    files[AUTHORITIES.lstrip("/")] = (content_of(AUTHORITIES),)
    files["etc/passwd"] = (b"intake:x:65532:65532::/:/\n",)
    layer = tar(files)
    packed = gzip.compress(layer, mtime=0)
    labels = {"title": "intake", "licenses": "Apache-2.0", "version": version, "revision": commit}
    labels["description"] = "Creates patient records in a clinic's register over a REST API"
    settings = {"ENVIRONMENT": "production", "HTTPS_ADDR": "0.0.0.0:8443", "ADMIN_ADDR": "0.0.0.0:9464"}
    configuration = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()],
        "os": "linux",
        "config": {
            "User": "65532:65532",
            "Entrypoint": ["intake"],
            "Env": ["PATH=/usr/local/bin"] + [f"INTAKE_{name}={value}" for name, value in settings.items()],
            "ExposedPorts": {"8443/tcp": {}, "9464/tcp": {}},
            "Labels": {f"org.opencontainers.image.{name}": value for name, value in labels.items()},
            # Not of OCI: Docker reads it, Podman does not. Orchestrators have probes of their own.
            "Healthcheck": {
                "Test": ["CMD", "intake", "probe"],
                "Interval": 10 * SECOND,
                "Timeout": 5 * SECOND,
                "StartPeriod": 60 * SECOND,
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    blobs = {}

    def blob(kind, content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = (content,)
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json"}
    manifest["config"] = blob("config.v1+json", json.dumps(configuration).encode())
    manifest["layers"] = [blob("layer.v1.tar+gzip", packed)]
    described = blob("manifest.v1+json", json.dumps(manifest).encode())
    # The names that Podman and Docker give it.
    names = {"org.opencontainers.image.ref.name": f"intake:{version}"}
    names["io.containerd.image.name"] = f"docker.io/library/intake:{version}"
    described["annotations"] = names
    index = {"schemaVersion": 2, "manifests": [described]}
    blobs["index.json"] = (json.dumps(index).encode(),)
    # Docker's own store of images reads nothing but this, as `docker save` writes it.
    paths = [described["digest"].replace(":", "/") for described in [manifest["config"], *manifest["layers"]]]
    paths = [f"blobs/{path}" for path in paths]
    docker = [{"Config": paths[0], "RepoTags": [f"intake:{version}"], "Layers": paths[1:]}]
    blobs["manifest.json"] = (json.dumps(docker).encode(),)
    blobs["oci-layout"] = (b'{"imageLayoutVersion": "1.0.0"}',)
    with open(output, "wb") as file:
        file.write(tar(blobs))


main(*sys.argv[1:])
