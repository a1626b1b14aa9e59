# syntax=docker/dockerfile:1
# trtforge with its prebuilt addon and ONNX Runtime on the CPU, without NVIDIA's software: `docker build -t trtforge .`
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" -v trtforge:/cache trtforge toolchain install tensorrt-rtx --accept-license
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" -v trtforge:/cache trtforge forge model.onnx --precision fp16 --target tensorrt-rtx:sm_89
# With a GPU and NVIDIA's container toolkit: docker run --gpus all …
FROM node:22-bookworm AS packages
WORKDIR /trtforge
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts
COPY . .
RUN npm run pack:native -- /packages

FROM node:22-bookworm-slim
# `toolchain install` downloads TensorRT-RTX with pip, after its user accepts NVIDIA's licence.
RUN apt-get update \
  && apt-get install --yes --no-install-recommends ca-certificates python3 python3-pip \
  && rm -rf /var/lib/apt/lists/*
COPY --from=packages /packages /tmp/packages
# The package of ONNX Runtime contains its CPU libraries; its install script only downloads those for CUDA.
RUN npm install --global --ignore-scripts --no-audit --no-fund /tmp/packages/*.tgz \
  && rm -rf /tmp/packages /root/.npm \
  && install --directory --owner=node --group=node /work \
  # Any user of the host writes here: --user has to be the owner of the folder mounted as /work.
  && install --directory --mode=1777 /cache
ENV XDG_CACHE_HOME=/cache NVIDIA_DRIVER_CAPABILITIES=compute,utility
VOLUME /cache
USER node
WORKDIR /work
ENTRYPOINT ["trtforge"]
CMD ["doctor"]
