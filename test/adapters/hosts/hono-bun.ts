/** Hono on `Bun.serve`. */
import { app } from './hono-app.js'

declare const Bun: { serve(options: object): { port: number } }
const { port } = Bun.serve({ port: 0, hostname: '127.0.0.1', development: false, fetch: app.fetch })
console.log(JSON.stringify({ port }))
