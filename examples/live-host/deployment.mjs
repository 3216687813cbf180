/** Several nodes and an observer over one store, each a process of its own, so that any of them can be killed. */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { PREFIX } from './host.mjs'
import { endAll, own } from './processes.mjs'
import { openStore } from './store.mjs'

const NODE_PROGRAM = fileURLToPath(new URL('node-process.mjs', import.meta.url))
// What `npx relayscope` starts.
const RELAYSCOPE = fileURLToPath(new URL('cli/observe.js', import.meta.resolve('relayscope')))
const NODE_IDS = ['a', 'b']

/**
 * Starts it all over the store at `redis`, see `openStore`. The nodes listen on `port` and those after it, or on free
 * ones; `plan` is what each of them gets. Without a `deploymentId` the deployment is this run's own and ends with it.
 * `onExit(name, pid, how)` is called when a process ends by itself or is killed.
 */
export async function startDeployment({ redis, deploymentId, port, onExit, ...plan }) {
  const store = await openStore(redis)
  const name = deploymentId ?? `live-host-${crypto.randomUUID().slice(0, 8)}`
  const children = []
  const portOf = (i) => (port === 0 ? 0 : port + i)

  function watch(role, child) {
    children.push(own(child))
    child.on('exit', (code, signal) => onExit(role, child.pid, signal ?? code))
    return child
  }

  async function close() {
    await endAll(children)
    if (deploymentId === undefined) await store.forget(name)
    await store.close()
  }

  async function startNode(nodeId, i) {
    const NODE_PLAN = JSON.stringify({
      ...plan,
      nodeId,
      port: portOf(i),
      store: { url: store.url, deploymentId: name },
    })
    const child = watch(`node ${nodeId}`, fork(NODE_PROGRAM, { env: { ...process.env, NODE_PLAN } }))
    const [{ urls, guest }] = await first(child, 'message')
    return { nodeId, pid: child.pid, url: urls[0], guest }
  }

  async function startObserver() {
    // A URL may hold a password, and a list of processes shows arguments.
    const env = { ...process.env, RELAYSCOPE_REDIS_URL: store.url, SERVICE_ADMIN_KEY: plan.key }
    const port = String(portOf(NODE_IDS.length))
    const args = ['observe', '--deployment', name, '--port', port, '--prefix', PREFIX, '--metrics']
    const options = { env, stdio: ['ignore', 'pipe', 'inherit'] }
    const child = watch('the observer', spawn(process.execPath, [RELAYSCOPE, ...args], options))
    const [line] = await first(child, 'line', createInterface({ input: child.stdout }))
    return { pid: child.pid, url: line.slice(line.indexOf('http')).replace(/\/$/, '') }
  }

  try {
    const nodes = []
    // One after the other: the first opens what both of them share.
    for (const [i, nodeId] of NODE_IDS.entries()) nodes.push(await startNode(nodeId, i))
    const observer = await startObserver()
    return {
      deployment: { deploymentId: own, storePid: store.pid, nodes, observer },
      urls: nodes.map(({ url }) => url),
      diagnostics: observer.url,
      guest: nodes[0].guest,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The first `event` of `source`, unless `child` ends before; what was wrong it has said itself. */
async function first(child, event, source = child) {
  const settled = new AbortController()
  const { signal } = settled
  const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error('a process ended before it began')))
  try {
    return await Promise.race([once(source, event, { signal }), ended])
  } finally {
    settled.abort()
    ended.catch(() => {})
  }
}
