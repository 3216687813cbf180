/** In a NestJS application on its Express platform. Needs `@nestjs/core`, `@nestjs/common`, `@nestjs/platform-express`. */
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what your relay feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})

// Decorators as plain functions, so that this runs without a compiler.
class HostController {
  own() {
    return 'the host’s own'
  }
}
Get()(HostController.prototype, 'own', Object.getOwnPropertyDescriptor(HostController.prototype, 'own'))
Controller()(HostController)
class AppModule {}
Module({ controllers: [HostController] })(AppModule)

// #region mount
import { toExpressMiddleware } from 'relayscope/express'

const app = await NestFactory.create(AppModule)
// Before `listen`, and so before the body parsers of Nest.
app.use(toExpressMiddleware(diagnostics))
await app.listen(Number(process.argv[2] ?? 8080), '127.0.0.1')
// #endregion

console.log(`http://127.0.0.1:${app.getHttpServer().address().port}${diagnostics.prefix}/`)
