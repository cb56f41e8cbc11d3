# A server of the default bundle, as a user without rights.
#
#   docker build --tag mqan .                     on CPUs
#   docker build --tag mqan-ray --target ray .    on CPUs, with Ray: for several replicas (--ray) and for KubeRay
#   docker build --tag mqan-gpu --target gpu .    on NVIDIA GPUs
#   docker run --rm --shm-size 128m --publish 127.0.0.1:8000:8000 --publish 127.0.0.1:9000:9000 mqan
#
# Settings are environment variables (--env MQAN_MAX_CONTEXT_TOKENS=1000); arguments go to `mqan serve` (--ray). Ports
# only as variables (MQAN_HTTP_PORT): the health check reads them.
#
# For x86-64, which the packages' hashes are of; on ARM: docker build --platform linux/amd64.
#
# The base and all packages are named by what they hash to. Base: Python 3.11.14 on Debian 12;
# `docker buildx imagetools inspect python:3.11-slim-bookworm` tells a newer one's. Packages: deploy/hash_requirements.py.
FROM python:3.11.14-slim-bookworm@sha256:65a93d69fa75478d554f4ad27c85c1e69fa184956261b4301ebaf6dbb0a3543d AS base
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    MQAN_HOST=0.0.0.0
RUN useradd --create-home --uid 10001 mqan
WORKDIR /app
COPY deploy/requirements-*.txt deploy/
EXPOSE 8000 9000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["python", "-m", "mqan_serving.probe"]
ENTRYPOINT ["mqan", "serve"]

FROM base AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    MQAN_NUM_GPUS=1
RUN pip install --require-hashes --requirement deploy/requirements-gpu.txt
COPY . .
RUN pip install --no-deps --no-build-isolation --editable .
USER 10001

FROM base AS ray
RUN pip install --require-hashes --requirement deploy/requirements-ray.txt
COPY . .
RUN pip install --no-deps --no-build-isolation --editable .
USER 10001

# Without what no server loads: onnxruntime's library for C and its tools, numpy's tests. Of the packages only the modules
# that a server imports are compiled, and those of mqan, which its user could not write.
FROM base AS cpu
ENV PACKAGES=/usr/local/lib/python3.11/site-packages
RUN pip install --no-compile --require-hashes --requirement deploy/requirements-cpu.txt \
    && rm -r $PACKAGES/onnxruntime/capi/libonnxruntime.so.* $PACKAGES/onnxruntime/quantization \
        $PACKAGES/onnxruntime/tools $PACKAGES/onnxruntime/transformers \
    && find $PACKAGES/numpy -name tests -prune -exec rm -r {} +
COPY . .
RUN pip install --no-compile --no-deps --no-build-isolation --editable . \
    && python -c 'import mqan_cli.main, mqan_runtime.engine, mqan_serving.local'
USER 10001
