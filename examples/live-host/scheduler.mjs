/**
 * The host's own work, so that there is always something to look at: it has the project's documents counted by idle
 * workers, calls clients for their load, and asks for two things that cannot succeed.
 */
import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { delay } from './client/relay-client.mjs'

const DOCUMENTS = new URL('../../docs/', import.meta.url)
const TICK_MS = 1_000
const DEADLINE_MS = 10_000
const WATCH_MS = 8_000
// Every so many ticks: an action that no client knows, and a command for a client that never connects.
const UNKNOWN_EVERY = 10
const ABSENT_EVERY = 15
const ABSENT_CLIENT = 'console-offline'
// A document travels in a body of at most 64 KiB.
const TEXT_CHARACTERS = 20_000

/** Works until `signal` aborts. `clients`: the `{ user_id, client_id }` to work with. `latest` holds ids to ask about. */
export function startScheduler({ facilities, calls, clients, signal }) {
  const { contexts, dispatcher } = facilities
  const latest = {}
  const assignments = new Map()

  async function idleWorkers() {
    const filter = { ownership: 'worker', status: 'idle' }
    const { items } = await contexts.inspector.listContexts(filter, { limit: 100, cursor: null }, { signal })
    return items.filter(({ context_id, task_id }) => task_id === null && !assignments.has(context_id))
  }

  async function assign(document) {
    const [context] = await idleWorkers()
    if (!context) return
    const { context_id, user_id, client_id } = context
    const task_id = `count-${randomUUID()}`
    if (!(await contexts.assignTask(context_id, task_id))) return
    const text = (await readFile(new URL(document, DOCUMENTS), 'utf8')).slice(0, TEXT_CHARACTERS)
    // The command that carries a task bears its id, so that a context leads to its delivery record.
    const command = { user_id, client_id, command_id: task_id }
    const payload = { task_id, context_id, document, text }
    await dispatcher.dispatch({ ...command, action: 'count_words', payload, deadlineMs: DEADLINE_MS })
    assignments.set(context_id, command)
    Object.assign(latest, { task_id, context_id, command })
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

  async function call(client, action, payload) {
    const result = await calls.call(client, action, payload, DEADLINE_MS).catch(() => undefined)
    if (result) latest.load = { client_id: client.client_id, ...result }
  }

  const dispatch = (client, action) =>
    dispatcher.dispatch({ ...client, command_id: `${action}-${randomUUID()}`, action, deadlineMs: DEADLINE_MS })

  async function tick(n, documents) {
    await releaseEnded()
    await assign(documents[n % documents.length])
    const client = clients[n % clients.length]
    // Not awaited: a call is pending for as long as its client takes.
    call(client, 'report_load', {})
    if (n % 4 === 0) call(client, 'watch_load', { after_ms: WATCH_MS })
    if (n % UNKNOWN_EVERY === 0) await dispatch(client, 'translate_document')
    if (n % ABSENT_EVERY === 0) await dispatch({ ...client, client_id: ABSENT_CLIENT }, 'count_words')
  }

  async function work() {
    const documents = (await readdir(DOCUMENTS)).filter((name) => name.endsWith('.md'))
    for (let n = 0; !signal.aborted; n++) {
      await tick(n, documents).catch((error) => signal.aborted || console.error('the scheduler failed:', error))
      await delay(TICK_MS, signal)
    }
  }
  return { latest, done: work() }
}
