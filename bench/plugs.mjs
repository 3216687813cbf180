/**
 * What plugs cost, one part a plug. Build first; needs redis-server.
 * Run with `node bench/plugs.mjs [part]`. Quote the ratios; absolute times are this machine's.
 */
const PARTS = {
  bullmq: () => import('./plugs/bullmq.mjs'),
  calls: () => import('./plugs/calls.mjs'),
  clients: () => import('./plugs/clients.mjs'),
  'socket-io': () => import('./plugs/socket-io.mjs'),
}

const only = process.argv[2]
if (only !== undefined && !Object.hasOwn(PARTS, only))
  throw new RangeError(`there is no part ${only}; there are ${Object.keys(PARTS).join(', ')}`)
for (const [name, load] of Object.entries(PARTS)) if (only === undefined || only === name) await (await load()).run()
process.exit(0)
