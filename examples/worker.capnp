# How workerd serves examples/worker.mjs, once it is bundled into one file beside this one:
# npx esbuild examples/worker.mjs --bundle --format=esm --outfile=examples/worker.js && workerd serve examples/worker.capnp
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:8080", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2026-11-01",
  # request.signal tells when a client leaves.
  compatibilityFlags = ["enable_request_signal"],
  bindings = [(name = "SERVICE_ADMIN_KEY", fromEnvironment = "SERVICE_ADMIN_KEY")],
);
