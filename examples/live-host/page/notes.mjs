/** A viewer of the shared notes: it listens to the session's events and refetches, and asks for actions by name. */
import { askForOwn } from '/ask.mjs'
import { createCooperativeSiteClient } from '/relayscope-browser.mjs'

const LOG_MAX = 50

const at = (id) => document.getElementById(id)
const { user_id, token, session_id } = await askForOwn('/notes')
at('viewer').textContent = user_id

const site = createCooperativeSiteClient({
  baseUrl: '/cooperative',
  sessionId: session_id,
  headers: { authorization: `Bearer ${token}` },
})

function element(name, text) {
  return Object.assign(document.createElement(name), { textContent: text })
}

/** Returns the result of an action, or `undefined` after showing the error. */
async function ask(action, parameters) {
  try {
    const { status, result, error } = await site.invoke(action, parameters, { timeoutMs: 5_000 })
    at('said').textContent = status === 'succeeded' ? '' : (error.message ?? error.code)
    return status === 'succeeded' ? result : undefined
  } catch (error) {
    at('said').textContent = error.outcome === 'unknown' ? `${error.code}: it may have happened` : error.code
    return undefined
  }
}

function show({ notes }) {
  const items = notes.map(({ id, text, keep }) => {
    const item = element('li', keep ? `${text} (kept) ` : `${text} `)
    const button = element('button', 'Archive')
    button.type = 'button'
    button.addEventListener('click', () => ask('archive_note', { id }))
    item.append(button)
    return item
  })
  at('notes').replaceChildren(...items)
}

// An event says that something has changed, not the new state; several in a row need one reload only.
let looking = false
let lookAgain = false
async function refetch() {
  lookAgain = true
  if (looking) return
  looking = true
  while (lookAgain) {
    lookAgain = false
    const result = await ask('list_notes', {})
    if (result) show(result)
  }
  looking = false
}

function log(what, frame) {
  const item = element('li', `${what} ${JSON.stringify(frame)}`)
  item.dataset.frame = what
  at('log').prepend(item)
  at('log').children[LOG_MAX]?.remove()
}

at('new').addEventListener('submit', async (event) => {
  event.preventDefault()
  const { text, keep } = event.target.elements
  if (await ask('add_note', { text: text.value, keep: keep.checked })) event.target.reset()
})

// #region subscribe
const left = new AbortController()
addEventListener('pagehide', () => left.abort())
// A page restored from the browser's cache is a new instance.
addEventListener('pageshow', ({ persisted }) => persisted && location.reload())

site.subscribe({
  onReady(ready) {
    at('stream').textContent = 'live'
    log('ready', ready)
    refetch()
  },
  onEvent(event) {
    log('event', event)
    refetch()
  },
  onGap(gap) {
    log('gap', gap)
    refetch()
  },
  onEnd(end) {
    at('stream').textContent = end.reason === 'shutdown' ? 'the host is restarting' : `ended: ${end.reason}`
    log('end', { reason: end.reason, code: end.error?.code })
  },
  signal: left.signal,
})
// #endregion
