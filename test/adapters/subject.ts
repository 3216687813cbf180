/** The handler that the battery has every host carry: one path per thing that an adapter can get wrong. */
import { BAD_REQUEST, type FetchHandler, toResponse } from '../../src/adapters/handler.js'

export const PREFIX = '/ops/subject'
export const CHUNK_BYTES = 65_536
/** 64 MiB: far more than all kernel and user-space buffers between two loopback sockets hold. */
export const CHUNKS = 1024
export const SECRET = 'planted-secret-8231'

/** What happened to the requests so far, each under the name that its caller gave it. */
export interface Observed {
  aborted_at: number | null
  cancelled_at: number | null
  pulled: number
}

const observed = new Map<string, Observed>()

function observe(name: string): Observed {
  const known = observed.get(name) ?? { aborted_at: null, cancelled_at: null, pulled: 0 }
  observed.set(name, known)
  return known
}

function json(value: unknown, init: ResponseInit = {}): Response {
  const text = JSON.stringify(value)
  const headers = new Headers(init.headers)
  headers.set('content-type', 'application/json')
  headers.set('content-length', String(text.length))
  return new Response(text, { ...init, headers })
}

function chunks(into: Observed): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        into.pulled++
        controller.enqueue(new Uint8Array(CHUNK_BYTES))
        if (into.pulled === CHUNKS) controller.close()
      },
      cancel() {
        into.cancelled_at = Date.now()
      },
    },
    { highWaterMark: 0 },
  )
}

// Longer than any test; a pending timer, because workerd ends a request that waits for nothing.
const FOREVER_MS = 60_000
const forever = (): Promise<never> => new Promise((_, reject) => setTimeout(reject, FOREVER_MS))

/** One chunk, and then nothing until the client leaves. */
function silence(into: Observed): ReadableStream<Uint8Array> {
  let started = false
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (started) return forever()
        started = true
        controller.enqueue(new TextEncoder().encode('first'))
        return undefined
      },
      cancel() {
        into.cancelled_at = Date.now()
      },
    },
    { highWaterMark: 0 },
  )
}

const routes: Record<string, (request: Request, name: string) => Response | Promise<Response>> = {
  '/cookies': () =>
    json('two', {
      headers: [
        ['set-cookie', 'a=1; Path=/'],
        ['set-cookie', 'b=2; Path=/'],
      ],
    }),
  '/throw': () => {
    throw new Error(SECRET)
  },
  '/reject': async () => Promise.reject(new Error(SECRET)),
  '/nothing': () => undefined as unknown as Response,
  '/broken': () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.error(new Error(SECRET))
        },
      }),
    ),
  '/empty': () => new Response(null, { status: 204 }),
  '/read': async (request) => json((await request.text()).length),
  '/late': (request, name) => {
    const seen = observe(name)
    seen.pulled++
    request.signal.addEventListener('abort', () => {
      seen.aborted_at = Date.now()
    })
    return forever()
  },
  '/chunks': (_, name) => new Response(chunks(observe(name))),
  '/silence': (_, name) => new Response(silence(observe(name))),
  '/observed': (_, name) => json(observe(name)),
}

function answer(request: Request): Response | Promise<Response> {
  // A bare handler meets what an adapter would have refused.
  if (!URL.canParse(request.url)) return toResponse(BAD_REQUEST)
  const { pathname, searchParams, search } = new URL(request.url)
  const path = pathname.slice(PREFIX.length)
  const route = routes[path]
  if (route) return route(request, searchParams.get('name') ?? '')
  if (!path.startsWith('/echo')) return json('not found', { status: 404 })
  if (!['GET', 'HEAD', 'POST'].includes(request.method))
    return json('method not allowed', { status: 405, headers: { allow: 'GET, HEAD, POST' } })
  return json({ method: request.method, path, search, key: request.headers.get('x-admin-key') })
}

export const subject: FetchHandler = Object.assign((request: Request) => answer(request), {
  owns: (pathname: string) => pathname === PREFIX || pathname.startsWith(`${PREFIX}/`),
})
