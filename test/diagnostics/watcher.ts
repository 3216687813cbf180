/** One who watches, for the tests of what is sent. */
import { KEY, ORIGIN, PREFIX, type Router } from './subject.js'

export interface Frame {
  event: string
  // biome-ignore lint/suspicious/noExplicitAny: a frame is read by the assertions, field by field
  data: any
}

export const target = (...views: string[]) =>
  `/watch?${views.map((view) => `view=${encodeURIComponent(view)}`).join('&')}`

/** Opens a watch and takes it apart, chunk by chunk. */
export async function open(router: Router, views: string[], init: RequestInit = {}) {
  const left = new AbortController()
  const request = new Request(`${ORIGIN}${PREFIX}${target(...views)}`, {
    headers: { 'x-admin-key': KEY },
    signal: left.signal,
    ...init,
  })
  const response = await router(request)
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const decoder = new TextDecoder()
  return {
    request,
    response,
    leave: () => left.abort(),
    cancel: () => reader.cancel(),
    async take(): Promise<Frame[]> {
      const { done, value } = await reader.read()
      if (done) return []
      return decoder
        .decode(value)
        .split('\n\n')
        .filter(Boolean)
        .map((text) => {
          const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/s.exec(text) ?? []
          return { event, data: JSON.parse(data) }
        })
    },
  }
}
