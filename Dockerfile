# sparsezo serve, with clusters of words. Texts and sessions are in /data, the folder that you name:
#   docker build -t sparsezo .
#   docker run -it -p 8765:8765 -v "$PWD:/data" sparsezo chunking --inputs raw.txt --tags PER,LOC,ORG --host 0.0.0.0
# It runs as user 1000, who must be able to write there. TLS is for a proxy in front of it (SECURITY.md).
FROM python:3.12-slim
COPY . /src
RUN pip install --no-cache-dir '/src[serve,clusters]' && useradd --create-home --uid 1000 sparsezo
USER sparsezo
WORKDIR /data
EXPOSE 8765
ENTRYPOINT ["sparsezo", "serve"]
