/** As much of Express and Koa as the hosts use: neither ships types. */
declare module 'express' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  export interface Response extends ServerResponse {
    send(body: string): this
  }
  export type Middleware = (req: IncomingMessage & { originalUrl: string }, res: Response, next: () => void) => void
  export interface Application extends RequestListener {
    use(...middlewares: Middleware[]): this
    use(path: string, middleware: Middleware): this
    get(path: string, handler: Middleware): this
  }
  function express(): Application
  namespace express {
    function json(): Middleware
    function raw(options?: { type: string }): Middleware
    function text(options?: { type: string }): Middleware
    function urlencoded(options?: { type: string }): Middleware
    function Router(): Application
  }
  export default express
}

declare module 'koa' {
  import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'

  interface Context {
    req: IncomingMessage
    res: ServerResponse
    path: string
    body: unknown
    respond: boolean
  }
  export default class Koa {
    use(middleware: (ctx: Context, next: () => Promise<void>) => unknown): this
    callback(): RequestListener
  }
}
