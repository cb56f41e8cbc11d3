# A server of the default bundle, as a user without rights.
#
#   docker build --tag mqan .                     on CPUs
#   docker build --tag mqan-gpu --target gpu .    on NVIDIA GPUs
#   docker run --rm --shm-size 128m --publish 127.0.0.1:8000:8000 --publish 127.0.0.1:9000:9000 mqan
#
# Settings are environment variables (--env MQAN_MAX_CONTEXT_TOKENS=1000); arguments go to `mqan serve` (--local).
FROM python:3.11-slim AS base
ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    MQAN_HOST=0.0.0.0
RUN useradd --create-home --uid 10001 mqan
WORKDIR /app
# What decides which packages are installed comes first, so that a change of code installs nothing again.
COPY pyproject.toml constraints.txt constraints-gpu.txt README.md LICENSE ./
COPY core/mqan_core/__init__.py core/mqan_core/
EXPOSE 8000 9000
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 CMD ["python", "-c", "import os, urllib.request; \
    urllib.request.urlopen(f\"http://127.0.0.1:{os.environ.get('MQAN_HTTP_PORT', '8000')}/health/ready\", timeout=2)"]
ENTRYPOINT ["mqan", "serve"]

FROM base AS gpu
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    MQAN_NUM_GPUS=1
RUN pip install --constraint constraints.txt --constraint constraints-gpu.txt --editable '.[gpu]'
COPY . .
USER 10001

FROM base AS cpu
RUN pip install --constraint constraints.txt --editable '.[cpu]'
COPY . .
USER 10001
