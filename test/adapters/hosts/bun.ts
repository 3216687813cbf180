/** `Bun.serve`: the recipe without an adapter. */
import { subject } from '../subject.js'

declare const Bun: { serve(options: object): { port: number } }
const { port } = Bun.serve({ port: 0, hostname: '127.0.0.1', development: false, fetch: subject })
console.log(JSON.stringify({ port }))
