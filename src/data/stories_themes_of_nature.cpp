#include "data/stories_text.h"

namespace sextant {

std::string_view story_themes_of_nature() {
  return R"(
theme: sea
place: harbour/at | beach/on | lighthouse/at | pier/on | bay/in
thing: shell/pink | compass/brass | spyglass/golden | bottle/green | bucket/striped | pearl/white | flag/blue
animal: crab/red/clicked its claws | gull/noisy/flapped its wings | turtle/slow/poked out its head
  starfish/orange/wiggled its arms | seal/sleepy/barked twice
worker: fisherman/he/his | captain/she/her | sailor/he/his | diver/she/her
spot: under the nets | behind the barrels | inside the fish crate | between the rocks | beneath the seaweed
  under the rowing boat
skill: row a boat/rowing a boat | tie a knot/tying a knot | mend a net/mending a net | catch a fish/catching a fish
  steer the ship/steering the ship
trouble: sail/tore in the wind/sewed it up with strong thread | boat/sprang a leak/plugged the hole with wax
  oar/snapped in two/bound it with a rope | mast/cracked in the storm/nailed a board across it
scene: the waves rolled onto the sand | gulls circled above the water | a ship sailed past the rocks
  the tide crept up the shore | the salty wind blew | the boats rocked gently
food: a bowl of fish soup | a bag of salty crackers | some grilled shrimp
sound: a strange splash | a low rumble | a faint whistle
make: build a sandcastle/built a tall sandcastle/sandcastle | make a raft/made a sturdy raft/raft
  make a necklace/threaded a necklace of shells/necklace
fun: jumped over the waves | dug in the sand | collected pebbles | splashed in the shallow water

theme: forest
place: forest/in | clearing/in | woods/in | pine grove/in | brook/by
thing: feather/speckled | whistle/wooden | acorn/golden | basket/woven | lantern/tin | pinecone/large | walking stick/carved
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

theme: winter
place: frozen lake/at | ski slope/on | cabin/in | village/in | ice rink/at
thing: mitten/woollen | sledge/fast | skate/sharp | icicle/glittering | snow globe/pretty | cap/furry | shovel/wide
animal: penguin/funny/waddled in a circle | reindeer calf/young/shook its head | robin/small/fluffed its feathers
  hare/snowy/thumped its foot | husky/friendly/wagged its tail
worker: skier/she/her | postman/he/his | snowplough driver/she/her | sledge maker/he/his
spot: under the snow | behind the snowdrift | inside the igloo | between the fir trees | beneath the frozen branches
  behind the woodpile
skill: skate/skating | ski/skiing | build an igloo/building an igloo | drive the sledge/driving the sledge
  clear the snow/clearing the snow
trouble: sledge/lost a runner/screwed on a new runner | stove/went out/lit it with dry kindling
  ski/split down the middle/glued it and waited | window/froze shut/thawed it with warm water
scene: snowflakes floated down | smoke curled out of the chimneys | icicles hung from every roof
  the snow crunched under their boots | frost covered the windows | the northern lights flickered
food: a mug of hot cocoa | some gingerbread | a pot of pea stew
sound: a sharp crack | a tinkling sound | a jingling noise
make: build a snowman/rolled a huge snowman/snowman | build a snow fort/built a mighty snow fort/snow fort
  knit a scarf/knitted a thick scarf/scarf
fun: threw snowballs | slid across the ice | made snow angels | went sledging down the hill

theme: river
place: river/by | lake/at | pond/at | dam/on | island/on
thing: paddle/painted | fishing hook/bent | reed pipe/hollow | toy boat/yellow | pebble/smooth | net/fine | float/orange
animal: frog/green/puffed up its throat | duck/fluffy/quacked | otter/playful/rolled onto its back
  beaver/busy/slapped its tail | newt/spotted/wagged its tail
worker: ferryman/he/his | miller/he/his | angler/she/her | lock keeper/she/her
spot: under the willow | behind the reeds | inside the barrel | between the water lilies | beneath the jetty
  under the canoe
skill: paddle a canoe/paddling a canoe | swim/swimming | skip a stone/skipping a stone | open the lock/opening the lock
  steer the ferry/steering the ferry
trouble: canoe/hit a rock/patched it with bark and tar | water wheel/got stuck/pulled the weeds out of it
  jetty/began to sink/put new poles under it | ferry/drifted away/dragged it back with a rope
scene: dragonflies danced over the reeds | the current gurgled under the bridge | a kingfisher dived for minnows
  the water sparkled like glass | swans glided past | ripples spread across the pond
food: a plate of fried trout | some watercress sandwiches | a jar of pickled plums
sound: a loud croak | a sudden plop | a gurgling noise
make: build a dam/built a dam of sticks and mud/dam | make a paper boat/folded a fine paper boat/paper boat
  weave a mat/wove a mat of reeds/mat
fun: waded through the mud | watched the tadpoles | floated on their backs | raced leaves down the stream

theme: mountain
place: mountain/on | summit/on | cave/at | cabin/in | ridge/on
thing: crystal/clear | map/folded | rope/thick | rucksack/heavy | goat bell/rusty | flask/silver | eagle feather/brown
animal: goat/woolly/stamped its hoof | marmot/plump/sat up and whistled | eagle/proud/spread its wings
  lizard/tiny/flicked its tongue | raven/black/croaked loudly
worker: guide/she/her | shepherd/he/his | climber/she/her | hermit/he/his
spot: behind the boulder | under the ledge | inside the crack in the rock | between the stones | beneath the juniper
  behind the waterfall
skill: read a map/reading a map | climb a cliff/climbing a cliff | herd the goats/herding the goats
  find the trail/finding the trail | yodel/yodelling
trouble: cable car/stopped halfway/oiled the big wheel | ladder/lost a rung/fitted a new rung
  backpack/ripped open/stitched the seam | fence/fell flat/raised the posts again
scene: clouds drifted below the peak | an echo rang across the valley | the snow glittered on the summit
  a stream tumbled down the slope | the thin air was cold and fresh | the path wound up the steep slope
food: a piece of goat cheese | some dried apricots | a pot of barley soup
sound: a distant echo | a clatter of stones | a long howl
make: build a cairn/piled up a tall cairn/cairn | make a sundial/scratched a sundial into a flat stone/sundial
  make a rope ladder/knotted a long rope ladder/rope ladder
fun: shouted to hear the echo | scrambled over the rocks | counted the peaks | picked alpine flowers
)";
}

}  // namespace sextant
