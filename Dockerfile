# A small image: holdfast with compiled kernels, a Java for Spark, and a user without rights.
#
#   docker build -t holdfast .
#   docker run --rm -v "$PWD:/data" holdfast track people people.csv
#
# Steps that begin with pip or python are run by tests/app/test_image.py.

FROM python:3.12-slim AS wheel
WORKDIR /src
COPY . .
RUN pip install --quiet --no-cache-dir --editable .
RUN python -m holdfast.kernels --ship
RUN pip wheel --quiet --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
RUN apt-get update \
 && apt-get install --yes --no-install-recommends default-jre-headless procps \
 && rm -rf /var/lib/apt/lists/*
COPY --from=wheel /wheels /wheels
RUN pip install --quiet --no-cache-dir /wheels/*.whl
RUN rm -rf /wheels && useradd --create-home --uid 1000 holdfast
USER holdfast
WORKDIR /data
ENTRYPOINT ["holdfast"]
CMD ["--help"]
