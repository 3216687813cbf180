/** The router of the live demo, in the page: it answers what the dashboard asks from a recording, and nothing is sent anywhere. */
import { createReplay, openRecording } from 'relayscope/incident'

const base = new URL('relay', document.baseURI).href
const given = globalThis.fetch

let replaying
async function open() {
  const response = await given(new URL('recording.json', document.baseURI))
  const segments = await response.json()
  return createReplay(openRecording(segments.map(({ name, text }) => ({ name, read: () => text }))))
}

globalThis.fetch = async (input, init) => {
  const request = new Request(input, init)
  if (!request.url.startsWith(`${base}/`)) return given(input, init)
  replaying ??= open()
  const { signal, headers } = request
  return (await replaying).fetch(new Request(`http://relay${request.url.slice(base.length)}`, { signal, headers }))
}
