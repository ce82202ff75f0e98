# One image for both processes: `cardquota webhook` and `cardquota controller`.
FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/cardquota
COPY pyproject.toml README.md LICENSE ./
COPY core core
COPY kube kube
COPY webhook webhook
COPY controller controller
COPY cli cli
RUN /opt/cardquota/bin/pip install --no-cache-dir --no-compile . && /opt/cardquota/bin/pip uninstall -y pip

FROM python:3.11-slim
COPY --from=build /opt/cardquota /opt/cardquota
ENV PATH=/opt/cardquota/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["cardquota"]
