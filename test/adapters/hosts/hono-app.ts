/** A Hono application with its own route after the handlers. */
import { Hono } from 'hono'
import { toHonoHandler } from '../../../src/adapters/hono.js'
import { carried } from '../handlers.js'

export const app = new Hono()
for (const handler of carried) app.use(toHonoHandler(handler))
app.get('/hosts-own', (c) => c.text('own'))
