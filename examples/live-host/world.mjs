/** `npm start -- --world <name>`: a small deployment of a given kind, with real facilities, to be looked at in the dashboard. */
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createFlightRecorder } from 'relayscope/incident'
import { startNodeServer } from 'relayscope/node'
import { DASHBOARD, PREFIX } from './host.mjs'

/** The names of all worlds: each is a file in `worlds/`. */
export const WORLDS = ['broken', 'browser', 'calls', 'empty', 'jobs', 'large']

const HOST = '127.0.0.1'

/**
 * Starts the world `name`, with its router and the dashboard on `port`; 0 takes a free one. Its file exports
 * `open({ signal })`, which resolves to the options of the router that inspect it, a text about it, and `close()`.
 * `signal` aborts when the world has to end.
 */
export async function startWorld({ name, key, port, signal }) {
  if (!WORLDS.includes(name)) throw new Error(`Unknown world "${name}". Worlds: ${WORLDS.join(', ')}`)
  const { open } = await import(`./worlds/${name}.mjs`)
  const { composition, about, close } = await open({ signal })
  const recorder = createFlightRecorder(composition)
  try {
    const { inspectors, deployment } = composition
    const recorder = createFlightRecorder({ inspectors, deployment })
    const diagnostics = createDiagnosticsRouter({
      ...composition,
      recorder,
      auth: resolveAdminAuth({ key, strict: true, host: HOST }),
      prefix: PREFIX,
    })
    const dashboard = createDashboard({ api: PREFIX, prefix: DASHBOARD })
    const answer = (request, info) =>
      (dashboard.owns(new URL(request.url).pathname) ? dashboard : diagnostics)(request, info)
    const server = await startNodeServer(answer, { host: HOST, port, allowedHosts: ['loopback'] })
    return {
      about,
      url: server.url,
      async close() {
        await Promise.all([server.close(), recorder.close()])
        await close()
      },
    }
  } catch (error) {
    await recorder.close()
    await close()
    throw error
  }
}
