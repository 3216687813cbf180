/** `Deno.serve`. */
import { toDenoHandler } from '../../../src/adapters/deno.js'
import { both } from '../handlers.js'

declare const Deno: {
  serve(options: object, handler: ReturnType<typeof toDenoHandler>): unknown
}
Deno.serve(
  { port: 0, hostname: '127.0.0.1', onListen: ({ port }: { port: number }) => console.log(JSON.stringify({ port })) },
  toDenoHandler(both),
)
