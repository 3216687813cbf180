/** `Bun.serve`: the recipe without an adapter. */
import { both } from '../handlers.js'

declare const Bun: { serve(options: object): { port: number } }
const { port } = Bun.serve({ port: 0, hostname: '127.0.0.1', development: false, fetch: both })
console.log(JSON.stringify({ port }))
