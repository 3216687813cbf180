/** Express 5, with its own route after the handlers. */
import { createServer } from 'node:http'
import express from 'express'
import { toExpressMiddleware } from '../../../src/adapters/express.js'
import { carried } from '../handlers.js'
import { listen } from './listen.js'

const app = express()
for (const handler of carried) app.use(toExpressMiddleware(handler))
app.get('/hosts-own', (_, res) => void res.send('own'))
listen(createServer(app))
