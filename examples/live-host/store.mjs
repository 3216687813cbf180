/** The store that nodes share: a Redis that is there already, or the machine's own `redis-server`, started for one run. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { endAll, own } from './processes.mjs'

// A server that was just started has its socket within that.
const START_MS = 5_000
const RETRY_MS = 50

/**
 * `where` is the URL of a server, or `embedded`. Resolves to the store's `url`, the `pid` of an embedded server, and
 * `forget(deploymentId)`, which deletes the keys of one deployment from a server that stays. Errors are written for the
 * user.
 */
export async function openStore(where) {
  if (where === 'embedded') return startServer()
  await reach(where, () => false)
  return { url: where, pid: undefined, forget: (deploymentId) => forget(where, deploymentId), close: async () => {} }
}

async function startServer() {
  const port = await freePort()
  const dir = await mkdtemp(join(tmpdir(), 'relayscope-redis-'))
  const options = { port, bind: '127.0.0.1', dir, save: '', appendonly: 'no' }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
  // In a group of its own: Ctrl-C in a terminal must not end it before its nodes.
  const child = own(spawn('redis-server', args, { stdio: 'ignore', detached: true }))
  const close = async () => {
    await endAll([child])
    await rm(dir, { recursive: true, force: true })
  }
  try {
    await once(child, 'spawn')
  } catch {
    await rm(dir, { recursive: true, force: true })
    throw new Error(
      '--redis embedded starts the program redis-server, which is not on the PATH. Install it ' +
        '(apt install redis-server, brew install redis), or name a server: --redis redis://127.0.0.1:6379',
    )
  }
  try {
    const url = `redis://127.0.0.1:${port}`
    await reach(url, (retries) => child.exitCode === null && retries * RETRY_MS < START_MS && RETRY_MS)
    // Its keys end with it.
    return { url, pid: child.pid, forget: async () => {}, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Whether a Redis answers at `url`. `reconnectStrategy` says how often to ask. */
async function reach(url, reconnectStrategy) {
  try {
    const client = createClient({ url, socket: { reconnectStrategy } }).on('error', () => {})
    await client.connect()
    await client.ping()
    client.destroy()
  } catch (cause) {
    // Never the whole URL: it may hold a password.
    const name = URL.canParse(url) ? new URL(url).host : 'an invalid URL'
    throw new Error(`--redis: no Redis to use at ${name}: ${cause.message || cause.code}`, { cause })
  }
}

/** A port that was free a moment ago. */
async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

/** A server that is gone by now is not waited for. */
async function forget(url, deploymentId) {
  const client = createClient({ url, socket: { reconnectStrategy: false } }).on('error', () => {})
  try {
    await client.connect()
    const found = client.scanIterator({ MATCH: `relayscope:{${deploymentId}:*`, COUNT: 1_000 })
    for await (const keys of found) if (keys.length > 0) await client.unlink(keys)
  } catch (error) {
    console.error(`what was deployment ${deploymentId} stays in its store: ${error.message || error.code}`)
  }
  if (client.isOpen) client.destroy()
}
