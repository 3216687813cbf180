/** A Hono application with a route of its own beside the handler. */
import { Hono } from 'hono'
import { toHonoHandler } from '../../../src/adapters/hono.js'
import { subject } from '../subject.js'

export const app = new Hono()
app.use(toHonoHandler(subject))
app.get('/hosts-own', (c) => c.text('own'))
