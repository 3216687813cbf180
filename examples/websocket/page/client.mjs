/** The client's end of the WebSocket example, for a browser tab or any program that has `WebSocket`. */

// #region client
/** Joins the relay at `url` and runs `actions`, a map of names to async functions. @returns its socket. */
export function join(url, actions) {
  const socket = new WebSocket(`${url}&instance_id=${crypto.randomUUID()}`)
  const say = (type, body) => socket.send(JSON.stringify({ type, ...body }))
  const seen = new Map() // each command by its id, and how to stop it
  const context_id = crypto.randomUUID()
  const report = () => say('report', { context_id, status: 'active' })
  let reporting // a context that is not reported for 90 s is stale
  socket.addEventListener('open', () => {
    report()
    reporting = setInterval(report, 30_000)
  })
  socket.addEventListener('close', () => clearInterval(reporting))
  socket.addEventListener('message', async ({ data }) => {
    const { type, command_id, action, payload } = JSON.parse(data)
    if (type === 'cancel') seen.get(command_id)?.abort()
    if (type !== 'command') return
    say('ack', { command_id }) // never handed over again from here on
    if (seen.has(command_id)) return // until then it may come twice
    const cancelled = new AbortController()
    seen.set(command_id, cancelled)
    let ok = true
    try {
      await actions[action](payload, { signal: cancelled.signal })
    } catch {
      ok = false
    }
    say('result', { command_id, ok })
  })
  return socket
}
// #endregion
