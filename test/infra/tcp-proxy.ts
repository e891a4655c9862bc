import { connect, createServer, type Server, type Socket } from 'node:net'

/** Stands before a server so that a test can cut, refuse and freeze its connections. */
export class TcpProxy {
  readonly #target: URL
  readonly #sockets = new Set<Socket>()
  #server: Server | undefined
  #frozen = false
  port = 0

  constructor(targetUrl: string) {
    this.#target = new URL(targetUrl)
  }

  /** The target's URL with the proxy in the target's place. */
  get url(): string {
    const url = new URL(this.#target)
    url.hostname = '127.0.0.1'
    url.port = String(this.port)
    return url.href
  }

  /** Starts to listen, the second time on the port of the first. */
  async open(): Promise<void> {
    const server = createServer((inside) => this.#join(inside))
    this.#server = server
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve))
    const address = server.address()
    if (typeof address === 'object' && address) this.port = address.port
  }

  /** Cuts all connections and refuses new ones. */
  async down(): Promise<void> {
    const closed = new Promise((resolve) => (this.#server ? this.#server.close(resolve) : resolve(undefined)))
    this.#server = undefined
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** Goes on accepting connections and bytes, and passes nothing on. */
  freeze(): void {
    this.#frozen = true
    for (const socket of this.#sockets) socket.pause()
  }

  thaw(): void {
    this.#frozen = false
    for (const socket of this.#sockets) socket.resume()
  }

  #join(inside: Socket): void {
    const outside = connect(Number(this.#target.port || 6379), this.#target.hostname)
    for (const [socket, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      this.#sockets.add(socket)
      socket.on('data', (bytes) => other.write(bytes))
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
      if (this.#frozen) socket.pause()
    }
  }
}
