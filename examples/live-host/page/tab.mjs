/** A browser tab as a client: reports what the tab and its window are doing, and answers what the host asks of it. */
import { askForOwn } from '/ask.mjs'
import { delay, runRelayClient } from '/relay-client.mjs'

const REPORT_MS = 2_000

/** Survives a reload of this tab; another tab has another. */
function idOf(kind) {
  const kept = sessionStorage.getItem(kind) ?? `${kind}-${crypto.randomUUID()}`
  sessionStorage.setItem(kind, kept)
  return kept
}

const path = (noun, id) => `/relay/${noun}/${encodeURIComponent(id)}`

// A page can see neither its siblings nor its window: the window that it reports holds this one tab.
const tab = idOf('tab')
const window_id = idOf('window')

function report(relay) {
  const visible = document.visibilityState === 'visible'
  const state = document.fullscreenElement ? 'fullscreen' : 'normal'
  relay.send('PUT', path('windows', window_id), { focused: document.hasFocus(), state, tab_count: 1 })
  return relay.send('PUT', path('contexts', tab), { status: visible ? 'active' : 'idle', window_id })
}

const load = () => ({ visible: document.visibilityState === 'visible', uptime_ms: Math.round(performance.now()) })
const leave = new AbortController()
addEventListener('pagehide', () => leave.abort())
// Back from the browser's cache, the page is a new life.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

const { ticket } = await askForOwn('/')

await runRelayClient({
  baseUrls: [location.origin],
  ticket,
  hello: {
    client_id: tab,
    client_type: 'browser',
    actions: [{ name: 'report_load', description: 'Says how long the tab has been open.' }],
    metadata: { language: navigator.language },
  },
  handlers: { report_load: async () => load() },
  signal: leave.signal,
  async live(relay) {
    document.querySelector('#state').textContent = `connected as ${relay.user_id}/${relay.client_id}`
    const now = () => report(relay).catch(() => {})
    for (const event of ['focus', 'blur']) addEventListener(event, now, { signal: relay.signal })
    for (const event of ['visibilitychange', 'fullscreenchange'])
      document.addEventListener(event, now, { signal: relay.signal })
    while (!relay.signal.aborted) {
      await now()
      await delay(REPORT_MS, relay.signal)
    }
  },
})
