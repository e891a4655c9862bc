/** Addresses of this machine, of its network and of the cloud's metadata, in every notation. `plain`: an admin who writes it means it. */
const plain = '127.0.0.1 localhost 10.0.0.1 172.16.0.1 192.168.1.1 [::1] x.localhost [fd12:3456::1]'
const hidden =
  '127.1 127.0.1 0 0.0.0.0 2130706433 0x7f000001 0x7f.0.0.1 017700000001 0177.0.0.1 127.0.0.1. localhost. LOCALHOST. ' +
  '[::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1] [64:ff9b::169.254.169.254] ' +
  '[2002:7f00:1::] [2001:0:7f00:1::] [fe80::1] [fd00:ec2::254] [fd20:ce::254] 169.254.169.254 2852039166 0xa9fea9fe ' +
  '[::ffff:169.254.169.254] 168.63.129.16 100.64.0.1 198.18.0.1 224.0.0.1 255.255.255.255'

export const addresses: readonly { host: string; plain: boolean }[] = [
  ...plain.split(' ').map((host) => ({ host, plain: true })),
  ...hidden.split(' ').map((host) => ({ host, plain: false })),
]
