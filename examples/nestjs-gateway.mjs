/** Acknowledgements of a NestJS gateway. Needs `@nestjs/websockets`, `@nestjs/platform-socket.io` and those of nestjs.mjs. */
import { Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { WebSocketGateway } from '@nestjs/websockets'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { toExpressMiddleware } from 'relayscope/express'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections, rpc } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, rpc }),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }), // SERVICE_ADMIN_KEY, or this machine only
  prefix: '/ops/diagnostics',
})

/** Look up the user of your cookie or token here. This example trusts what the client sends. */
function whoIs({ user, client, instance }) {
  return { user_id: user, client_id: client, instance_id: instance, client_type: 'web' }
}

// #region before
class SyncGateway {
  handleConnection(client) {
    client.emit('sync', { since: 1 }, (reply) => console.log('synced', reply))
  }
}

// #endregion

// #region after
import { followSocketIo } from 'relayscope/socket.io'

class FollowedGateway extends SyncGateway {
  afterInit(io) {
    followSocketIo(io, { connections, calls: rpc, identify: (socket) => whoIs(socket.handshake.auth) })
  }
}
// #endregion

// Decorators as plain functions, so that this runs without a compiler.
WebSocketGateway()(FollowedGateway)
class AppModule {}
Module({ providers: [FollowedGateway] })(AppModule)

const app = await NestFactory.create(AppModule)
app.use(toExpressMiddleware(diagnostics))
await app.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
console.log(`http://127.0.0.1:${app.getHttpServer().address().port}${diagnostics.prefix}/`)
