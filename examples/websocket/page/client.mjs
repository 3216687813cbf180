/** The client's end of the WebSocket example, for a browser tab or any program that has `WebSocket`. */

// #region client
/** Joins the relay at `url` and runs `actions`, a map of names to async functions. @returns its socket. */
export function join(url, actions) {
  const socket = new WebSocket(`${url}&instance_id=${crypto.randomUUID()}`)
  const send = (type, body) => socket.send(JSON.stringify({ type, ...body }))
  const seen = new Map() // commands by id, with their AbortController
  const context_id = crypto.randomUUID()
  const report = () => send('report', { context_id, status: 'active' })
  let reporting // a context without a report for 90 s is stale
  socket.addEventListener('open', () => {
    report()
    reporting = setInterval(report, 30_000)
  })
  socket.addEventListener('close', () => clearInterval(reporting))
  socket.addEventListener('message', async ({ data }) => {
    const { type, command_id, action, payload } = JSON.parse(data)
    if (type === 'cancel') seen.get(command_id)?.abort()
    if (type !== 'command') return
    send('ack', { command_id }) // from here on it is not delivered again
    if (seen.has(command_id)) return // it can arrive twice before the acknowledgement
    const cancelled = new AbortController()
    seen.set(command_id, cancelled)
    let ok = true
    try {
      await actions[action](payload, { signal: cancelled.signal })
    } catch {
      ok = false
    }
    send('result', { command_id, ok })
  })
  return socket
}
// #endregion
