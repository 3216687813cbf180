/** A worker that lets its own counters be seen, with no adapter. An isolate's memory is its own: it is one process. */
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'

let accepted = 0
const deduplicator = {
  summary: () => ({ entries: accepted, capacity: null, ttl_ms: null, accepted, duplicates: 0, evicted: 0 }),
}

// #region mount
let diagnostics

export default {
  fetch(request, env) {
    // Settings of a worker arrive with a request, so the first request creates the router.
    diagnostics ??= createDiagnosticsRouter({
      inspectors: { deduplicator },
      auth: resolveAdminAuth({ strict: true, env }),
      prefix: '/ops/diagnostics',
    })
    if (diagnostics.owns(new URL(request.url).pathname)) return diagnostics(request)
    accepted++
    return new Response('the host’s own')
  },
}
// #endregion
