/**
 * The host's own work, so that there is always something to look at: it has the project's documents counted by idle
 * workers, calls clients for their load, and dispatches an action that no client knows.
 */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { delay } from './client/relay-client.mjs'

const DOCUMENTS = new URL('../../docs/', import.meta.url)
const TICK_MS = 2_000
const DEADLINE_MS = 10_000
// Long enough for another node to notice that one is gone, and to deliver what it had.
const TASK_DEADLINE_MS = 20_000
const WATCH_MS = 8_000
// By then a task's command has ended, and the task's owner has noticed.
const ORPHAN_MS = 25_000
// Every so many ticks: an action that no client knows.
const UNKNOWN_EVERY = 5
// A document travels in a body of at most 64 KiB.
const TEXT_CHARACTERS = 20_000

/** Works until `signal` aborts; then `done` resolves. `clients`: the `{ user_id, client_id }` to work with. */
export function startScheduler({ facilities, connector, clients, signal }) {
  const { contexts, dispatcher } = facilities
  // Every call that is pending listens to it.
  setMaxListeners(0, signal)
  const assignments = new Map()
  const watched = new Set()

  async function idleWorkerOf({ user_id, client_id }) {
    const filter = { user_id, client_id, ownership: 'worker', status: 'idle' }
    const { items } = await contexts.inspector.listContexts(filter, { limit: 100, cursor: null }, { signal })
    return items.find(({ context_id, task_id }) => task_id === null && !assignments.has(context_id))
  }

  async function assign(client, document) {
    const context = await idleWorkerOf(client)
    if (!context) return
    const { context_id, user_id, client_id } = context
    const task_id = `count-${randomUUID()}`
    if (!(await contexts.assignTask(context_id, task_id))) return
    const text = (await readFile(new URL(document, DOCUMENTS), 'utf8')).slice(0, TEXT_CHARACTERS)
    // The command that carries a task bears its id, so that a context leads to its delivery record.
    const command = { user_id, client_id, command_id: task_id }
    const payload = { task_id, context_id, document, text }
    assignments.set(context_id, command)
    await dispatcher.dispatch({ ...command, action: 'count_words', payload, deadline_ms: TASK_DEADLINE_MS })
  }

  /** A task is released when its command has come to its end, whichever that was. */
  async function releaseEnded() {
    for (const [context_id, command] of assignments) {
      const status = await dispatcher.inspector.status(command, { signal })
      if (status && !status.terminal) continue
      await contexts.releaseTask(context_id)
      assignments.delete(context_id)
    }
  }

  /** A task that has outlived its command was given by a node that is gone. */
  async function releaseOrphans({ user_id, client_id }) {
    const filter = { user_id, client_id, ownership: 'worker' }
    const { items } = await contexts.inspector.listContexts(filter, { limit: 100, cursor: null }, { signal })
    for (const { context_id, task_assigned_at } of items)
      if (task_assigned_at !== null && Date.parse(task_assigned_at) + ORPHAN_MS < Date.now())
        await contexts.releaseTask(context_id)
  }

  /** Not waited for: a call is pending for as long as its client takes. One that fails has its delivery record. */
  function call({ user_id, client_id }, action, parameters) {
    const asked = { action, parameters, timeout_ms: DEADLINE_MS, signal }
    return connector.call({ user_id, client_id }, asked).catch(() => {})
  }

  function watch(client) {
    if (watched.has(client)) return
    watched.add(client)
    call(client, 'watch_load', { after_ms: WATCH_MS }).then(() => watched.delete(client))
  }

  const dispatch = ({ user_id }, client_id, action) =>
    dispatcher.dispatch({ user_id, client_id, command_id: randomUUID(), action, deadline_ms: DEADLINE_MS })

  async function tick(n, documents) {
    await releaseEnded()
    for (const [i, client] of clients.entries()) {
      await releaseOrphans(client)
      await assign(client, documents[(n + i) % documents.length])
      watch(client)
    }
    const client = clients[n % clients.length]
    call(client, 'report_load', {})
    if (n % UNKNOWN_EVERY === 0) await dispatch(client, client.client_id, 'translate_document')
  }

  async function work() {
    const documents = (await readdir(DOCUMENTS)).filter((name) => name.endsWith('.md'))
    for (let n = 0; !signal.aborted; n++) {
      await tick(n, documents).catch((error) => signal.aborted || console.error('the scheduler failed:', error))
      await delay(TICK_MS, signal)
    }
  }
  return { done: work() }
}
