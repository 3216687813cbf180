/**
 * A console client: a process of its own that works for the host. It offers three actions, keeps two worker contexts
 * and one of its user, and speaks to the host over HTTP alone.
 */
import { delay, runRelayClient } from './client/relay-client.mjs'

const { RELAY_URLS, RELAY_TICKET, RELAY_CLIENT_ID, RELAY_CLUMSY } = process.env
const REPORT_MS = 2_000

const leave = new AbortController()
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => leave.abort())
// The host has exited, so this process has no more work.
process.on('disconnect', () => process.exit(0))

const contexts = [
  { context_id: `${RELAY_CLIENT_ID}-worker-a`, status: 'idle', ownership: 'worker' },
  { context_id: `${RELAY_CLIENT_ID}-worker-b`, status: 'idle', ownership: 'worker' },
  { context_id: `${RELAY_CLIENT_ID}-prompt`, status: 'active', ownership: 'user-owned' },
]

function report(relay, { context_id, ...state }) {
  return relay.send('PUT', `/relay/contexts/${encodeURIComponent(context_id)}`, state)
}

const load = () => ({ rss_bytes: process.memoryUsage.rss(), uptime_ms: Math.round(process.uptime() * 1_000) })

const handlers = {
  /** Counts the words of a document, slowly enough to be watched. */
  async count_words({ context_id, document, text }, { command, relay }) {
    const context = contexts.find((own) => own.context_id === context_id)
    const be = (status) => context && report(relay, Object.assign(context, { status }))
    try {
      await be('active')
      await delay(1_000 + (text.length % 1_000), leave.signal)
      const result = { document, words: text.split(/\s+/).filter(Boolean).length }
      await relay.send('POST', '/relay/messages', {
        message_id: `${command.command_id}-counted`,
        stream: `documents/${encodeURIComponent(document)}`,
        kind: 'event',
        payload: { name: 'document_counted', data: result },
      })
      return result
    } finally {
      // Also when the connection was lost over it: the next one reports a worker that is free.
      await be('idle')
    }
  },
  /** What this process weighs now. */
  report_load: async () => load(),
  /** What it weighs after a while: a call that is worth watching while it is pending. */
  async watch_load({ after_ms }) {
    await delay(after_ms, leave.signal)
    return load()
  },
}

// The clumsy one loses the first attempt of every other document, so that a retry is always to be seen.
let documents = 0
function ignores({ action, attempt }) {
  return RELAY_CLUMSY !== undefined && action === 'count_words' && attempt === 1 && documents++ % 2 === 1
}

await runRelayClient({
  baseUrls: RELAY_URLS.split(' '),
  ticket: RELAY_TICKET,
  hello: {
    client_id: RELAY_CLIENT_ID,
    client_type: 'console',
    actions: [
      { name: 'count_words', description: 'Counts the words of a document.' },
      { name: 'report_load', description: 'Says what this process weighs now.' },
      { name: 'watch_load', description: 'Says what this process weighs after a while.' },
    ],
    metadata: { pid: process.pid, node: process.version },
  },
  handlers,
  ignores,
  signal: leave.signal,
  async live(relay) {
    while (!relay.signal.aborted) {
      for (const context of contexts) await report(relay, context).catch(() => {})
      await delay(REPORT_MS, relay.signal)
    }
  },
})
process.disconnect?.()
