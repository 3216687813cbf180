/** A body that cannot be read because something before the handler has read it. */
export class BodyConsumedError extends TypeError {
  constructor() {
    super(
      'The request body was read before this handler, so it cannot be read again. Mount the handler before body parsers, or leave the body as parsed JSON, text or bytes in `req.body` of the Node request',
    )
  }
}
