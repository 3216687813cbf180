/** Koa: the recipe without an adapter of its own. */
import { createServer } from 'node:http'
import Koa from 'koa'
import { toNodeHandler } from '../../../src/adapters/node.js'
import { carried } from '../handlers.js'
import { listen } from './listen.js'

const app = new Koa()
for (const handler of carried) {
  const handle = toNodeHandler(handler)
  app.use((ctx, next) => {
    ctx.respond = false
    handle(ctx.req, ctx.res, () => {
      ctx.respond = true
    })
    return ctx.respond ? next() : undefined
  })
}
app.use((ctx) => {
  if (ctx.path === '/hosts-own') ctx.body = 'own'
})
listen(createServer(app.callback()))
