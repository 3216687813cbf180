/** Hono on `Deno.serve`. */
import { app } from './hono-app.js'

declare const Deno: { serve(options: object, handler: typeof app.fetch): unknown }
Deno.serve(
  { port: 0, hostname: '127.0.0.1', onListen: ({ port }: { port: number }) => console.log(JSON.stringify({ port })) },
  app.fetch,
)
