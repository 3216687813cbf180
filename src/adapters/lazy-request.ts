/** A `Request` that creates its costly parts on first read, for handlers with `reply`. */
import { type NodeRequest, type NodeResponse, readHeaders, signalOf, toRequest } from './node-request.js'

class LazyRequest {
  readonly method: string
  readonly url: string
  readonly #req: NodeRequest
  readonly #res: NodeResponse
  #headers: Headers | undefined
  #signal: AbortSignal | undefined
  #whole: Request | undefined

  constructor(req: NodeRequest, res: NodeResponse, url: string) {
    this.method = req.method ?? 'GET'
    this.url = url
    this.#req = req
    this.#res = res
  }

  get headers(): Headers {
    this.#headers ??= readHeaders(this.#req)
    return this.#headers
  }

  get signal(): AbortSignal {
    this.#signal ??= signalOf(this.#req, this.#res)
    return this.#signal
  }

  get whole(): Request {
    this.#whole ??= toRequest(this.#req, this.#res, this.url, this.signal)
    return this.#whole
  }
}

// All other members are delegated to a full Request.
Object.setPrototypeOf(LazyRequest.prototype, Request.prototype)
for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(Request.prototype))) {
  if (Object.hasOwn(LazyRequest.prototype, name)) continue
  if (get)
    Object.defineProperty(LazyRequest.prototype, name, {
      get(this: LazyRequest): unknown {
        return Reflect.get(this.whole, name)
      },
    })
  else
    Object.defineProperty(LazyRequest.prototype, name, {
      value(this: LazyRequest, ...given: unknown[]): unknown {
        return Reflect.apply(value, this.whole, given)
      },
    })
}

/**
 * The request that `req` is. Its members are those of any `Request`; only `new Request(request)` and `fetch(request)`
 * do not know it, and take its `clone()`.
 */
export function lazyRequest(req: NodeRequest, res: NodeResponse, url: string): Request {
  return new LazyRequest(req, res, url) as unknown as Request
}
