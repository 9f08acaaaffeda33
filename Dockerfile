# Checked by its text only: docs/ways-in.md. TORCH_INDEX is that of the Makefile.
FROM python:3.12-slim
ARG TORCH_INDEX=
ENV PATH=/venv/bin:$PATH
WORKDIR /itr_study
COPY requirements.lock .
RUN python -m venv /venv \
 && pip install --no-cache-dir ${TORCH_INDEX:+--index-url $TORCH_INDEX} $(grep '^torch==' requirements.lock) \
 && pip install --no-cache-dir -r requirements.lock
COPY . .
RUN pip install --no-deps --no-build-isolation -e . \
 && useradd --create-home reader && chown -R reader /itr_study
USER reader
EXPOSE 8888
CMD ["itr-study", "lab", "--ip", "0.0.0.0", "--no-browser"]
