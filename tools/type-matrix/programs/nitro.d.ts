/** The functions of h3 that Nitro imports by itself. */
declare function defineEventHandler<Result>(handler: (event: object) => Result): (event: object) => Result
declare function toWebRequest(event: object): Request
