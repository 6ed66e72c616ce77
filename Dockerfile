# The image of the service. A separate stage installs dependencies and builds the workflow bundle and the portal's pages; the final stage has
# neither compilers nor the embedded servers, and does not run as root.

FROM oven/bun:1.4.5-slim AS build
WORKDIR /build
COPY package.json bun.lock bunfig.toml ./
# Only the build needs development dependencies.
RUN bun install --frozen-lockfile --ignore-scripts
COPY tsconfig.json ./
COPY workflows ./workflows
COPY src ./src
RUN bun run build

FROM oven/bun:1.4.5-slim AS dependencies
WORKDIR /dependencies
COPY package.json bun.lock bunfig.toml ./
# The optional ones are the embedded Postgres and the bundler's compiler; neither is used here.
RUN bun install --frozen-lockfile --production --omit optional --ignore-scripts

FROM oven/bun:1.4.5-slim
WORKDIR /app
COPY --from=dependencies /dependencies/node_modules ./node_modules
COPY package.json tsconfig.json LICENSE ./
COPY workflows ./workflows
COPY src ./src
COPY docs ./docs
COPY --from=build /build/dist ./dist
RUN mkdir /data && chown bun:bun /data
USER bun
ENV HOST=0.0.0.0 \
    PLATFORM_HOST=0.0.0.0 \
    DATA_DIR=/data \
    LOG_FORMAT=json
EXPOSE 8080 8081
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["bun", "-e", "process.exit((await fetch('http://127.0.0.1:8081/health/ready')).ok ? 0 : 1)"]
ENTRYPOINT ["bun", "src/main.ts"]
CMD ["start"]
