#include "stories/stories_text.h"

namespace sextant {

std::string_view story_themes_of_nature() {
  return R"(
theme: water
place: harbour/at | river/by | beach/on | lake/at | lighthouse/at | pond/at | pier/on | dam/on | bay/in | island/on
thing: shell/pink | paddle/painted | compass/brass | fishing hook/bent | spyglass/golden | reed pipe/hollow
  bottle/green | toy boat/yellow | bucket/striped | pebble/smooth | pearl/white | net/fine | flag/blue | float/orange
animal: crab/red/clicked its claws | frog/green/puffed up its throat | gull/noisy/flapped its wings
  duck/fluffy/quacked | turtle/slow/poked out its head | otter/playful/rolled onto its back
  starfish/orange/wiggled its arms | beaver/busy/slapped its tail | seal/sleepy/barked twice
  newt/spotted/wagged its tail
worker: fisherman/he/his | ferryman/he/his | captain/she/her | miller/he/his | sailor/he/his | angler/she/her
  diver/she/her | lock keeper/she/her
spot: under the nets | under the willow | behind the barrels | behind the reeds | inside the fish crate
  inside the barrel | between the rocks | between the water lilies | beneath the seaweed | beneath the jetty
  under the rowing boat | under the canoe
skill: row a boat/rowing a boat | paddle a canoe/paddling a canoe | tie a knot/tying a knot | swim/swimming
  mend a net/mending a net | skip a stone/skipping a stone | catch a fish/catching a fish
  open the lock/opening the lock | steer the ship/steering the ship | steer the ferry/steering the ferry
trouble: sail/tore in the wind/sewed it up with strong thread | canoe/hit a rock/patched it with bark and tar
  boat/sprang a leak/plugged the hole with wax | water wheel/got stuck/pulled the weeds out of it
  oar/snapped in two/bound it with a rope | jetty/began to sink/put new poles under it
  mast/cracked in the storm/nailed a board across it | ferry/drifted away/dragged it back with a rope
scene: the waves rolled onto the sand | dragonflies danced over the reeds | gulls circled above the water
  the current gurgled under the bridge | a ship sailed past the rocks | a kingfisher dived for minnows
  the tide crept up the shore | the water sparkled like glass | the salty wind blew | swans glided past
  the boats rocked gently | ripples spread across the pond
food: a bowl of fish soup | a plate of fried trout | a bag of salty crackers | some watercress sandwiches
  some grilled shrimp | a jar of pickled plums
sound: a strange splash | a loud croak | a low rumble | a sudden plop | a faint whistle | a gurgling noise
make: build a sandcastle/built a tall sandcastle/sandcastle | build a dam/built a dam of sticks and mud/dam
  make a raft/made a sturdy raft/raft | make a paper boat/folded a fine paper boat/paper boat
  make a necklace/threaded a necklace of shells/necklace | weave a mat/wove a mat of reeds/mat
fun: jumped over the waves | waded through the mud | dug in the sand | watched the tadpoles | collected pebbles
  floated on their backs | splashed in the shallow water | raced leaves down the stream

theme: forest
place: forest/in | clearing/in | woods/in | pine grove/in | brook/by
thing: feather/speckled | whistle/wooden | acorn/golden | basket/woven | lantern/tin | pinecone/large
  walking stick/carved
animal: squirrel/red/flicked its tail | hedgehog/prickly/curled into a ball | owl/grey/blinked its eyes
  fox/young/pricked up its ears | badger/shy/shook its fur
worker: ranger/she/her | woodcutter/he/his | forester/he/his | beekeeper/she/her
spot: under the fern | behind the mossy log | inside the hollow tree | between the roots | beneath the leaves
  under the bramble bush
skill: climb a tree/climbing a tree | follow tracks/following tracks | chop firewood/chopping firewood
  find mushrooms/finding mushrooms | whistle like a bird/whistling like a bird
trouble: bridge/broke in the middle/laid new planks across it | treehouse/lost its roof/covered it with branches
  rope swing/came loose/tied it to a thicker branch | signpost/toppled over/hammered it back into the ground
scene: the leaves rustled in the breeze | a woodpecker tapped on a trunk | sunbeams fell through the branches
  the tall trees swayed | a deer stepped out of the shadows | the air smelled of pine needles
food: a handful of blackberries | some roasted chestnuts | a slice of nut cake
sound: a quiet rustle | a soft hoot | a deep growl
make: build a hut/built a cosy hut/hut | carve a flute/carved a slender flute/flute
  weave a crown/wove a crown of ivy/crown
fun: hopped over the roots | played hide and seek | gathered acorns | listened to the birds

theme: snow
place: frozen lake/at | mountain/on | ski slope/on | summit/on | cabin/in | cave/at | village/in | ice rink/at
  ridge/on
thing: mitten/woollen | crystal/clear | sledge/fast | map/folded | skate/sharp | rope/thick | icicle/glittering
  rucksack/heavy | snow globe/pretty | goat bell/rusty | cap/furry | flask/silver | shovel/wide | eagle feather/brown
animal: penguin/funny/waddled in a circle | goat/woolly/stamped its hoof | reindeer calf/young/shook its head
  marmot/plump/sat up and whistled | robin/small/fluffed its feathers | eagle/proud/spread its wings
  hare/snowy/thumped its foot | lizard/tiny/flicked its tongue | husky/friendly/wagged its tail
  raven/black/croaked loudly
worker: skier/she/her | guide/she/her | postman/he/his | shepherd/he/his | snowplough driver/she/her | climber/she/her
  sledge maker/he/his | hermit/he/his
spot: under the snow | behind the boulder | behind the snowdrift | under the ledge | inside the igloo
  inside the crack in the rock | between the fir trees | between the stones | beneath the frozen branches
  beneath the juniper | behind the woodpile | behind the waterfall
skill: skate/skating | read a map/reading a map | ski/skiing | climb a cliff/climbing a cliff
  build an igloo/building an igloo | herd the goats/herding the goats | drive the sledge/driving the sledge
  find the trail/finding the trail | clear the snow/clearing the snow | yodel/yodelling
trouble: sledge/lost a runner/screwed on a new runner | cable car/stopped halfway/oiled the big wheel
  stove/went out/lit it with dry kindling | ladder/lost a rung/fitted a new rung
  ski/split down the middle/glued it and waited | backpack/ripped open/stitched the seam
  window/froze shut/thawed it with warm water | fence/fell flat/raised the posts again
scene: snowflakes floated down | clouds drifted below the peak | smoke curled out of the chimneys
  an echo rang across the valley | icicles hung from every roof | the snow glittered on the summit
  the snow crunched under their boots | a stream tumbled down the slope | frost covered the windows
  the thin air was cold and fresh | the northern lights flickered | the path wound up the steep slope
food: a mug of hot cocoa | a piece of goat cheese | some gingerbread | some dried apricots | a pot of pea stew
  a pot of barley soup
sound: a sharp crack | a distant echo | a tinkling sound | a clatter of stones | a jingling noise | a long howl
make: build a snowman/rolled a huge snowman/snowman | build a cairn/piled up a tall cairn/cairn
  build a snow fort/built a mighty snow fort/snow fort | make a sundial/scratched a sundial into a flat stone/sundial
  knit a scarf/knitted a thick scarf/scarf | make a rope ladder/knotted a long rope ladder/rope ladder
fun: threw snowballs | shouted to hear the echo | slid across the ice | scrambled over the rocks | made snow angels
  counted the peaks | went sledging down the hill | picked alpine flowers
)";
}

}  // namespace sextant
