# One image for every process of Mason: the command chooses which (serve, worker, migrate, doctor, …).
FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6 AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY console/package.json ./console/
RUN npm ci --ignore-scripts
COPY . .
# traces need OpenTelemetry, an optional dependency without dependencies of others
RUN npm run build && npm run build:console && cp -a node_modules/@opentelemetry /opentelemetry && npm prune --omit=dev

FROM node:24.21.0-bookworm-slim@sha256:0e0ff40c39bc087845bfb27465a0df4ea419520094bc35842ff83dd8cbe6f9b6
# Node writes only to /data: the program stays root's, the process is not root.
ENV NODE_ENV=production DATA_DIR=/data
RUN install -d -o node -g node /data
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /opentelemetry ./node_modules/@opentelemetry
COPY --from=build /app/migrations ./migrations
COPY --from=build /app/dist ./dist
USER node
EXPOSE 8080
ENTRYPOINT ["node", "/app/dist/src/cli.js"]
CMD ["serve", "--host", "0.0.0.0"]
